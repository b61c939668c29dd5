//go:build !amd64

package killpoint

// older are the calls that newer platforms don't have any more.
var older []rule
