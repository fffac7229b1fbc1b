package flame

import (
	"regexp"
	"strings"
)

// typeArguments are the innermost ones of a generic function: they tell little, and hold
// paths of their own.
var typeArguments = regexp.MustCompile(`\[[^\[\]]*\]`)

// versioned is the last element of an import path that is only a version.
var versioned = regexp.MustCompile(`^v[0-9]+\.`)

// plain is a function's full name without type arguments.
func plain(name string) string {
	for {
		less := typeArguments.ReplaceAllString(name, "")
		if less == name {
			return name
		}
		name = less
	}
}

// short is a function's name with only the last element of its package's path.
func short(name string) string {
	name = plain(name)
	slash := strings.LastIndexByte(name, '/')
	last := name[slash+1:]
	if slash < 0 || !versioned.MatchString(last) {
		return last
	}
	dir := name[:slash]
	_, function, _ := strings.Cut(last, ".")
	return dir[strings.LastIndexByte(dir, '/')+1:] + "." + function
}

// kind groups functions that the graph paints alike.
type kind int

const (
	limiter kind = iota
	client
	collector
	system
	scheduler
	load
	other
)

var kinds = []struct {
	name, color string
}{
	limiter:   {"the limiter", "#9ecae1"},
	client:    {"Redis client", "#fdd0a2"},
	collector: {"garbage collector", "#c7e9c0"},
	system:    {"network and kernel", "#dadaeb"},
	scheduler: {"runtime", "#fdf3b0"},
	load:      {"load generator", "#d9d9d9"},
	other:     {"others", "#f0f0f0"},
}

const module = "github.com/hybridlimit/hybrid"

// prefixes say what a function is, by its full name; the first that fits counts.
var prefixes = []struct {
	prefix string
	kind   kind
}{
	{module + "/bench/", load},
	{module + "/internal/", load},
	{module, limiter},
	{"github.com/puzpuzpuz/xsync", limiter},
	{"github.com/redis/go-redis", client},
	{"github.com/go-redis", client},
	{"runtime.gc", collector},
	{"runtime.bgsweep", collector},
	{"runtime.bgscavenge", collector},
	{"runtime.scan", collector},
	{"runtime.mark", collector},
	{"runtime.greyobject", collector},
	{"runtime.sweepone", collector},
	{"runtime.(*gc", collector},
	{"runtime.netpoll", system},
	{"runtime.futex", system},
	{"runtime.epoll", system},
	{"runtime/internal/syscall", system},
	{"internal/runtime/syscall", system},
	{"internal/poll", system},
	{"syscall", system},
	{"net.", system},
	{"runtime", scheduler},
	{"internal/runtime", scheduler},
	{"sync.", scheduler},
	{"internal/sync.", scheduler},
}

func kindOf(name string) kind {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p.prefix) {
			return p.kind
		}
	}
	return other
}
