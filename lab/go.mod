module github.com/hybridlimit/hybrid/lab

go 1.26.0

replace github.com/hybridlimit/hybrid => ..
