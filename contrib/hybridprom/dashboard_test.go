package hybridprom

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

// dashboard is what the tests look at in dashboard.json.
type dashboard struct {
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ H, W, X, Y int }
	Datasource  struct{ Type, UID string }
	Targets     []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	d := new(dashboard)
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// queried are the panels that show data.
func (d *dashboard) queried() (panels []panel) {
	for _, p := range d.Panels {
		if p.Type != "row" {
			panels = append(panels, p)
		}
	}
	return panels
}

// filledIn is a query with the variables replaced, as Grafana does it.
func filledIn(expr string) string {
	return strings.NewReplacer("$job", ".*", "$instance", ".*", "$limiter", ".*", "$__rate_interval", "1m").Replace(expr)
}

func TestDashboardIsTidy(t *testing.T) {
	d := readDashboard(t)
	var rows, variables []string
	ids := map[int]bool{}
	var taken [200][24]int // which panel has which cell of the grid
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the id %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			rows = append(rows, p.Title)
		} else {
			checkPanel(t, &p)
		}
		for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				if taken[y][x] != 0 {
					t.Fatalf("%s lies on panel %d", p.Title, taken[y][x])
				}
				taken[y][x] = p.ID
			}
		}
	}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	if want := []string{"Decisions", "Redis", "Fleet & keys", "Health"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	if want := []string{"datasource", "job", "instance", "limiter"}; !slices.Equal(variables, want) {
		t.Errorf("variables %q, want %q", variables, want)
	}
}

func checkPanel(t *testing.T, p *panel) {
	t.Helper()
	if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
		t.Errorf("%s: its data source is not the one that was chosen: %+v", p.Title, p.Datasource)
	}
	if !strings.Contains(p.Description, "Normal") {
		t.Errorf("%s: its description does not say what is normal: %q", p.Title, p.Description)
	}
	if len(p.Targets) == 0 || p.GridPos.W == 0 || p.GridPos.H == 0 {
		t.Errorf("%s shows nothing", p.Title)
	}
}

// selector is a metric in a query, with its matchers.
var selector = regexp.MustCompile(`(hybrid_[a-z_]+)(\{[^}]*\})?`)

var matcher = regexp.MustCompile(`([a-z_]+)(=~|=)"([^"]*)"`)

// Every series that the dashboard and the alerts ask for is in a real scrape: its
// name, its labels, and, where a label must have a value, that value.
func TestQueriesAskForWhatThereIs(t *testing.T) {
	server := redistest.Start(t)
	node := newNode(t, server.Addr, func(o *hybrid.Options) { o.StoreTimeout = 20 * time.Millisecond })
	newLimiter(t, node, "api", hybrid.PerMinute(100), nil)
	login := newLimiter(t, node, "login", hybrid.PerMinute(100), &hybrid.LimiterOptions{Accuracy: hybrid.Exact})
	newLimiter(t, node, "trial", hybrid.PerMinute(100), &hybrid.LimiterOptions{Shadow: true})
	metrics := fresh(t, node)
	server.Kill()
	redistest.Eventually(t, "an operation has failed", func() bool {
		allow(t, login, "k", 1)
		return metrics.scrape().sum("hybrid_operation_failures_total") > 0
	})
	scraped := metrics.scrape()

	asked := map[string][]string{} // the queries, by where they are
	d := readDashboard(t)
	for _, p := range d.queried() {
		for _, target := range p.Targets {
			asked[fmt.Sprintf("panel %q", p.Title)] = append(asked[fmt.Sprintf("panel %q", p.Title)], filledIn(target.Expr))
		}
	}
	for _, v := range d.Templating.List {
		asked["variable "+v.Name] = []string{filledIn(v.Definition)}
	}
	for _, a := range readAlerts(t) {
		asked["alert "+a.Alert] = []string{a.Expr}
	}
	used := map[string]bool{}
	for where, queries := range asked {
		checkApplies(t, where, strings.Join(queries, "\n"))
		for _, m := range selector.FindAllStringSubmatch(strings.Join(queries, "\n"), -1) {
			used[m[1]] = true
			if !scraped.has(m[1], m[2]) {
				t.Errorf("%s asks for %s, which there is not", where, m[0])
			}
		}
	}
	for _, name := range names() {
		if !used[name] && !used[name+"_bucket"] {
			t.Errorf("nobody looks at %s", name)
		}
	}
}

// checkApplies fails the test if a query takes what would be denied in shadow mode for
// denials, or a bound that nobody keeps to for one; or if it asks since when Redis is
// silent where no limiter asks it for anything.
func checkApplies(t *testing.T, where, queries string) {
	t.Helper()
	shadow := strings.Contains(queries, `result="denied"`) || strings.Contains(queries, "== Inf")
	if shadow && !strings.Contains(queries, `shadow="true"`) {
		t.Errorf("%s does not know of shadow mode", where)
	}
	if strings.Contains(queries, "sync_lag") && !strings.Contains(queries, "count without (limiter, accuracy, on_failure, shadow) (hybrid_limiter_info") {
		t.Errorf("%s does not know of nodes without limiters", where)
	}
}

// has reports whether a series has a name and fits the matchers. The server that
// scrapes adds job and instance.
func (s samples) has(name, matchers string) bool {
next:
	for series := range s {
		got, labels, _ := strings.Cut(series, "{")
		if got != name {
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
			label, op, value := m[1], m[2], m[3]
			switch {
			case label == "job" || label == "instance":
			case op == "=~" && strings.Contains(", "+labels, ", "+label+"=\""):
			case op == "=" && strings.Contains(", "+labels, fmt.Sprintf(", %s=%q", label, value)):
			default:
				continue next
			}
		}
		return true
	}
	return false
}
