package debugui

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/hybridlimit/hybrid"
	"github.com/hybridlimit/hybrid/internal/redistest"
)

var screenshot = flag.Bool("screenshot", false, "write docs/images/debugui*.png, in two and a half minutes")

// The pictures of the documentation are of a fleet under traffic:
//
//	go test -run TestScreenshots -screenshot -timeout 10m .
func TestScreenshots(t *testing.T) {
	if !*screenshot {
		t.Skip("writes files, with -screenshot only")
	}
	redisServer := redistest.Start(t)
	way := redistest.NewProxy(t, redisServer.Addr)
	var nodes []*hybrid.Node
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: way.Addr, ContextTimeoutEnabled: true, DialerRetries: 1})
		node, err := hybrid.New(rdb, &hybrid.Options{Logger: silent, MaxKeys: 20_000, StoreTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, node)
		t.Cleanup(func() {
			_ = node.Close()
			_ = rdb.Close()
		})
		wg.Go(func() { customers(ctx, t, node, uint64(i)) })
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	page, err := Handler(nodes[0], &Options{Name: "api-7f9c-2"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)

	b := openBrowser(t, 1280, 1000)
	b.do(chromedp.EmulateViewport(1280, 1000))
	b.do(chromedp.Navigate(server.URL))
	time.Sleep(110 * time.Second) // a chart is two minutes wide
	b.do(runs(`document.querySelector("button.key").click(); document.activeElement.blur()`))
	b.wantText("#story .why", ":")
	for _, scheme := range []string{"light", "dark"} { // dark is the one that is kept
		b.scheme(scheme)
		time.Sleep(1500 * time.Millisecond)
		save(t, b, "debugui", scheme == "dark")
	}
	phone(b)
	way.Refuse()
	time.Sleep(25 * time.Second)
	save(t, b, "debugui-outage", true)
}

// phone shows how it looks where there is little room.
func phone(b *browser) {
	b.do(chromedp.EmulateViewport(390, 844))
	time.Sleep(1500 * time.Millisecond)
	save(b.t, b, "debugui-phone", false)
	b.do(chromedp.EmulateViewport(1280, 1000))
}

// save writes a picture for the documentation, or one to look at.
func save(t *testing.T, b *browser, name string, keep bool) {
	t.Helper()
	dir := os.TempDir()
	if keep {
		dir = "../docs/images"
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shot, err := png.Decode(bytes.NewReader(run(b, chromedp.FullScreenshot(100))))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, fewColours(shot)); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("%s/%s.png", dir, name)
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d kB", path, out.Len()/1000)
	if keep && out.Len() > 250_000 {
		t.Errorf("%s has %d kB, too many for a repository", path, out.Len()/1000)
	}
}

// fewColours is a picture in its 256 most frequent colours, of those that look alike
// one each: a page has few, and between them the edges of letters.
func fewColours(in image.Image) image.Image {
	count := map[color.RGBA]int{}
	bounds := in.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[color.RGBAModel.Convert(in.At(x, y)).(color.RGBA)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	alike := map[[3]uint8]bool{}
	var few color.Palette
	for _, c := range frequent {
		if cell := [3]uint8{c.R / 12, c.G / 12, c.B / 12}; !alike[cell] && len(few) < 256 {
			alike[cell] = true
			few = append(few, c)
		}
	}
	out := image.NewPaletted(bounds, few)
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(few.Index(c))
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[color.RGBAModel.Convert(in.At(x, y)).(color.RGBA)])
		}
	}
	return out
}

// customers use a node of a service as customers do: many a little, a few too much.
func customers(ctx context.Context, t *testing.T, node *hybrid.Node, seed uint64) {
	kinds := []struct {
		name   string
		limit  hybrid.Limit
		opts   hybrid.LimiterOptions
		rate   int // requests a second
		keys   uint64
		prefix string
		cost   int64
	}{
		{"api", hybrid.PerMinute(1000), hybrid.LimiterOptions{}, 900, 3000, "customer-", 1},
		{"login", hybrid.PerMinute(10), hybrid.LimiterOptions{Accuracy: hybrid.Strict, OnFailure: hybrid.FailClosed}, 40, 900, "203.0.113.", 1},
		{"tokens", hybrid.PerHour(400_000), hybrid.LimiterOptions{Accuracy: hybrid.Within(0.05, 0), OnFailure: hybrid.FailOpen}, 60, 400, "org_", 900},
	}
	var wg sync.WaitGroup
	for i, k := range kinds {
		l, err := node.Limiter(k.name, k.limit, &k.opts)
		if err != nil {
			t.Error(err)
			return
		}
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		zipf := rand.NewZipf(random, 1.25, 4, k.keys)
		wg.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				<-tick.C
				busy := 1 + 0.35*float64(n/150%4)/3 + 0.2*random.Float64() // demand comes and goes
				for range int(float64(k.rate)/50*busy + random.Float64()) {
					_, _ = l.AllowN(ctx, fmt.Sprint(k.prefix, zipf.Uint64()), k.cost) // it only fails as the test ends
				}
			}
		})
	}
	wg.Wait()
}
