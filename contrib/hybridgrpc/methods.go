package hybridgrpc

import (
	"fmt"
	"strings"
)

// methods are the methods that an interceptor is for: full ones, and services with the
// slash after them. nil: all.
type methods map[string]bool

func newMethods(field string, patterns []string) (methods, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	m := make(methods, len(patterns))
	for i, p := range patterns {
		service, method, ok := strings.Cut(strings.TrimPrefix(p, "/"), "/")
		if !ok || p[0] != '/' || service == "" || method == "" || strings.Contains(method, "/") {
			return nil, invalid(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%.64q", p), `a full method, as in "/package.Service/Method", or all of a service, as in "/package.Service/*"`)
		}
		m[strings.TrimSuffix(p, "*")] = true
	}
	return m, nil
}

func (m methods) has(method string) bool {
	return m == nil || m[method] || m[method[:strings.LastIndexByte(method, '/')+1]]
}
