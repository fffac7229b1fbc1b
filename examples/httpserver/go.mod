module github.com/hybridlimit/hybrid/examples/httpserver

go 1.26.0

replace (
	github.com/hybridlimit/hybrid => ../..
	github.com/hybridlimit/hybrid/contrib/hybridprom => ../../contrib/hybridprom
	github.com/hybridlimit/hybrid/debugui => ../../debugui
)

require (
	github.com/hybridlimit/hybrid v0.0.0-00010101000000-000000000000
	github.com/hybridlimit/hybrid/contrib/hybridprom v0.0.0-00010101000000-000000000000
	github.com/hybridlimit/hybrid/debugui v0.0.0-00010101000000-000000000000
	github.com/prometheus/client_golang v1.23.2
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.66.1 // indirect
	github.com/prometheus/procfs v0.16.1 // indirect
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
