module github.com/hybridlimit/hybrid/bench

go 1.26.0

replace github.com/hybridlimit/hybrid => ..
