//go:build race

package nodemanager

const stride = 7
