package sim

import (
	"strconv"

	"github.com/redis/go-redis/v9"
)

// This file says how many bytes calls and replies are on the wire, in Redis's own
// protocol (RESP): each value is a line that says its kind and its size, and texts
// are followed by themselves.

// bytesOfCalls is what a client sends.
func bytesOfCalls(cmds []redis.Cmder) (sum int64) {
	for _, cmd := range cmds {
		args := cmd.Args()
		sum += line(len(args))
		for _, arg := range args {
			sum += text(lengthOf(arg))
		}
	}
	return sum
}

// bytesOfReply is what the store answers.
func bytesOfReply(reply any) (sum int64) {
	switch v := reply.(type) {
	case []any:
		sum = line(len(v))
		for _, part := range v {
			sum += bytesOfReply(part)
		}
	case []redis.Z:
		sum = line(2 * len(v))
		for _, z := range v {
			sum += text(lengthOf(z.Member)) + text(lengthOf(z.Score))
		}
	case int64:
		sum = int64(3 + digits(v))
	case string:
		sum = text(len(v))
	case storeError:
		sum = int64(3 + len(v))
	}
	return sum
}

// line is a kind, a number, and an end of line.
func line(n int) int64 { return int64(3 + digits(int64(n))) }

// text is a line with its length, itself, and an end of line.
func text(length int) int64 { return line(length) + int64(length) + 2 }

// lengthOf is that of an argument as the client writes it.
func lengthOf(arg any) int {
	switch v := arg.(type) {
	case string:
		return len(v)
	case int:
		return digits(int64(v))
	case int64:
		return digits(v)
	case float64:
		return len(strconv.FormatFloat(v, 'f', -1, 64))
	}
	return 0
}

// digits is how many characters a number has.
func digits(n int64) (count int) {
	if n < 0 {
		return 1 + digits(-n)
	}
	for count = 1; n >= 10; count++ {
		n /= 10
	}
	return count
}
