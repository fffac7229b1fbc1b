// Package hybridgin limits requests of Gin with package hybrid: the middleware of
// package httplimit as a gin.HandlerFunc, with the same Options, answers and
// headers.
//
//	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil)
//	...
//	limit, err := hybridgin.New(api, &httplimit.Options{Key: httplimit.Header("X-API-Key")})
//	...
//	router.Use(limit)
//
// All kinds of keys work as they do elsewhere, and two know Gin:
//
//   - httplimit.Pattern is the method and the pattern of the route, as in "GET /items/:id".
//     Of a route for all methods (Any) each method has a budget of its own; where
//     that is too much for one client, httplimit.Fixed names the route.
//     Requests that no route matches share one key.
//   - httplimit.Value with a string finds what an earlier middleware has left with
//     Context.Set: the user, as in httplimit.Value("user"). What is not there is looked
//     for in the request's context.
//
// httplimit.RemoteIP and httplimit.ClientIP look at the connection and at the
// proxies that they were told to trust. They do not ask Gin's Context.ClientIP, which
// trusts every proxy unless Engine.SetTrustedProxies has been called.
//
// The functions of the Options get an *http.Request; Context returns the Gin context
// that belongs to it:
//
//	Cost: func(r *http.Request) int64 { return costs[hybridgin.Context(r).Param("kind")] },
//	Deny: func(_ http.ResponseWriter, r *http.Request, d httplimit.Decision) {
//		hybridgin.Context(r).AbortWithStatusJSON(d.Status, gin.H{"error": "too many requests"})
//	},
//
// A request that does not pass is answered and aborted: later handlers do not run,
// earlier ones see the status. Panics of handlers reach Gin's recovery as they
// would without a limit, and the request stays charged.
//
// Beyond what httplimit does, a request takes three pieces of memory: a copy of the
// http.Request, its context, and the route's pattern.
package hybridgin
