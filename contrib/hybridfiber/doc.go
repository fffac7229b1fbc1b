// Package hybridfiber limits requests of Fiber with package hybrid: the decisions,
// answers and headers of package httplimit, in a fiber.Handler. Fiber stands on
// fasthttp and not on net/http, so nothing is converted: the adapter is made of an
// httplimit.Decider.
//
//	api, err := node.Limiter("api", hybrid.PerMinute(1000), nil)
//	...
//	limit, err := hybridfiber.New(api, &hybridfiber.Options{Key: httplimit.Header("X-API-Key")})
//	...
//	app.Use(limit)
//
// It is for Fiber v3.
//
// # Keys
//
// The Keys of httplimit serve here too, and KeyFunc makes one of a function of
// Fiber's context. Two know Fiber:
//
//   - httplimit.Pattern is the method and the pattern of the route, as in "GET /items/:id".
//     Of a route for all methods (All) each method has a budget of its own, and so
//     does HEAD beside GET; where that is too much for one client, httplimit.Fixed
//     names the route.
//     Fiber knows it in handlers of the route: app.Get("/items/:id", limit, handler). In
//     a middleware of Use no request has a pattern yet, and so no key.
//   - httplimit.Value finds what an earlier middleware has left with Ctx.Locals: the
//     user, as in httplimit.Value("user"). What is not there is looked for in Ctx.Context.
//
// httplimit.RemoteIP and httplimit.ClientIP look at the connection and at the
// proxies that they were told to trust. They do not ask Ctx.IP, which takes the header
// of a proxy from its left end, where clients write what they like.
//
// # Answers
//
// A request that does not pass is answered, and later handlers do not run; the
// table is that of httplimit. Errors and panics of handlers go on to Fiber as they
// would without a limit, and the request stays charged. fasthttp does not tell when
// a client has left, so a request waits for Redis as long as the node's StoreTimeout
// and its Ctx.Context allow.
//
// Fiber uses the memory of a request's strings again for the next one. Keys are
// copied before anybody remembers them, so a Key function may return what Ctx.Get or
// Ctx.Params returned, and Decision.Key may be kept.
package hybridfiber
