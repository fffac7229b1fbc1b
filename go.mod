module github.com/hybridlimit/hybrid

go 1.26.0
