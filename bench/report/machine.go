package report

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Made says when, of what and on what something was measured, without naming
// the machine.
func Made(redis string) string {
	return fmt.Sprintf("%s, commit %s, %s, %s/%s, %d × %s, Redis %s",
		time.Now().UTC().Format(time.DateOnly), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), processor(), redis)
}

// commit is that of the folder it runs in; a plus means that code differs from it.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	hash := strings.TrimSpace(string(out))
	if out, err := exec.Command("git", "status", "--porcelain", "--", "*.go", "*.mod", "*.lua").Output(); err != nil || len(out) > 0 {
		hash += "+"
	}
	return hash
}

// processor is the model as Linux tells it.
func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "processor of unknown model"
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor of unknown model"
}

// Versions are those of modules that this program is built of, by path.
func Versions() map[string]string {
	versions := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			versions[m.Path] = m.Version
		}
	}
	return versions
}
