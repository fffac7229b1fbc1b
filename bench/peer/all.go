package peer

// All lists the contestants, the library first.
func All() []Kind {
	return []Kind{
		Strict, Balanced, Exact, Take,
		redisRate, throttledMemory, throttledRedis, ululeMemory, ululeRedis,
		sethvargoMemory, sethvargoRedis, goZero, httpRate, timeRate, timeRateMap,
		bareMap, barePing,
	}
}
