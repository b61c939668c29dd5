// Command pause is the first process of every pod on a testbed's nodes: it holds the
// pod's namespaces, and waits. In a pod whose containers share their processes it also
// collects those that have no other parent.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		collect()
	}
}

// collect forgets all children that have ended: of several signals only one is kept.
func collect() {
	for {
		if child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || child <= 0 {
			return
		}
	}
}
