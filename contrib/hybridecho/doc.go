// Package hybridecho limits requests of Echo with package hybrid: the middleware
// of package httplimit as an echo.MiddlewareFunc, with the same Options, answers and
// headers.
//
//	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil)
//	...
//	limit, err := hybridecho.New(api, &httplimit.Options{Key: httplimit.Header("X-API-Key")})
//	...
//	e.Use(limit)
//
// All kinds of keys work as they do elsewhere, and two know Echo:
//
//   - httplimit.Pattern is the method and the pattern of the route, as in "GET /items/:id".
//     Of a route for all methods (Any) each method has a budget of its own; where
//     that is too much for one client, httplimit.Fixed names the route.
//     Requests that no route matches share one key; in Echo.Pre, which runs before the
//     routes are looked up, that is all of them.
//   - httplimit.Value with a string finds what an earlier middleware has left with
//     Context.Set: the user, as in httplimit.Value("user"). What is not there is looked
//     for in the request's context.
//
// httplimit.RemoteIP and httplimit.ClientIP look at the connection and at the
// proxies that they were told to trust. They do not ask Echo's Context.RealIP, which
// trusts what any client writes unless Echo.IPExtractor is set.
//
// The functions of the Options get an *http.Request; Context returns the Echo
// context that belongs to it, and Fail leaves the answer to Echo's error handler:
//
//	Cost: func(r *http.Request) int64 { return costs[hybridecho.Context(r).Param("kind")] },
//	Deny: func(_ http.ResponseWriter, r *http.Request, d httplimit.Decision) {
//		hybridecho.Fail(r, echo.NewHTTPError(d.Status))
//	},
//
// Without those a request that does not pass is answered here, and Echo is told of
// no error. Errors and panics of handlers go on to Echo as they would without a limit,
// and the request stays charged.
//
// Beyond what httplimit does, a request takes three pieces of memory: a copy of the
// http.Request, its context, and the route's pattern.
package hybridecho
