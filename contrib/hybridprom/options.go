package hybridprom

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hybridlimit/hybrid"
)

// Options are the settings of a collector. The zero value of each field means
// its default.
type Options struct {
	// Namespace is what all names begin with, before a "_": letters, digits and
	// "_", and no digit first. Default "hybrid". The dashboard and the alerts
	// that come with this package know the default alone.
	Namespace string

	// ConstLabels are on all series: they tell several nodes of one process
	// apart. Names are as that of Namespace, do not begin with "__", and are
	// none of this package's own labels. Default none.
	ConstLabels prometheus.Labels

	// MinInterval is how long the numbers of one look at the node are good for:
	// scrapes that come sooner get them again, since a look walks over every
	// key that is in touch with Redis. 1 ms to 1 min, default 1 s.
	MinInterval time.Duration
}

// Bounds of the options.
const (
	shortest = time.Millisecond
	longest  = time.Minute
)

var validName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// withDefaults returns a copy that is complete and valid, or an error that names
// the field, its value and what is allowed.
func (o *Options) withDefaults() (Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	if full.Namespace == "" {
		full.Namespace = "hybrid"
	}
	if full.MinInterval == 0 {
		full.MinInterval = time.Second
	}
	full.ConstLabels = maps.Clone(full.ConstLabels)
	return full, full.validate()
}

func (o *Options) validate() error {
	switch {
	case !validName.MatchString(o.Namespace):
		return invalid("Options.Namespace", fmt.Sprintf("%q", o.Namespace), `letters, digits and "_", no digit first`)
	case o.MinInterval < shortest || o.MinInterval > longest:
		return invalid("Options.MinInterval", o.MinInterval, "1ms to 1m")
	}
	for _, name := range slices.Sorted(maps.Keys(o.ConstLabels)) {
		if err := validateLabel(name, o.ConstLabels[name]); err != nil {
			return err
		}
	}
	return nil
}

func validateLabel(name, value string) error {
	switch {
	case !validName.MatchString(name) || strings.HasPrefix(name, "__"):
		return invalid("Options.ConstLabels", fmt.Sprintf("the name %q", name), `names of letters, digits and "_", no digit and no "__" first`)
	case slices.Contains(ownLabels(), name):
		return invalid("Options.ConstLabels", fmt.Sprintf("the name %q", name), "names other than "+strings.Join(ownLabels(), ", "))
	case !utf8.ValidString(value):
		return invalid("Options.ConstLabels", fmt.Sprintf("%q of %s", value, name), "values in UTF-8")
	}
	return nil
}

// ownLabels are the names of labels that metrics have of their own, sorted.
func ownLabels() []string {
	own := []string{"le"} // of histograms
	for _, m := range metrics {
		own = append(own, m.labels...)
	}
	slices.Sort(own)
	return slices.Compact(own)
}

func invalid(field string, value any, allowed string) error {
	return fmt.Errorf("%w: hybridprom.%s: %v, allowed %s", hybrid.ErrInvalidOption, field, value, allowed)
}
