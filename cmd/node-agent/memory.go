package main

import (
	"os"
	"runtime/debug"
)

// heapGrowth is how much the heap grows until garbage is collected, in percent of what was live. Go's default is 100. An
// agent's work is short, so more collections cost little, and a node's memory belongs to its pods.
const heapGrowth = 25

// limitHeap has garbage collected after heapGrowth. GOGC takes precedence.
func limitHeap() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
