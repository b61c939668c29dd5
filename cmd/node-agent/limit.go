package main

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Limits of machine types, as Google documents them for persistent disks and Hyperdisks,
// less one: the disk that the machine boots from.
const (
	sharedCoreLimit = 15
	usualLimit      = 127
)

// sharedCores are the machine types whose processors are shared.
var sharedCores = map[string]bool{"f1-micro": true, "g1-small": true, "e2-micro": true, "e2-small": true, "e2-medium": true}

// diskStep is what machines of a series take that have at most so many processors.
type diskStep struct{ processors, disks int }

// steps are of the series that have Hyperdisks only, which take more disks the more
// processors they have.
var steps = map[string][]diskStep{
	"c4":  {{2, 7}, {8, 15}, {32, 31}, {48, 63}},
	"c4a": {{2, 7}, {8, 15}, {48, 31}, {96, 63}},
	"c4d": {{2, 3}, {4, 7}, {8, 15}, {96, 31}, {192, 63}},
	"n4":  {{8, 15}, {80, 31}},
}

// disksOn returns how many disks of gce backends a node takes. It is what was asked for, or else
// the limit of its machine type, which a cloud writes on its Node. Where none is written, it is the
// limit of most types.
func (o *options) disksOn(node *corev1.Node) int32 {
	if o.maxDisks > 0 {
		return o.maxDisks
	}
	machineType := node.Labels[corev1.LabelInstanceTypeStable]
	if sharedCores[machineType] {
		return sharedCoreLimit
	}
	series, _, _ := strings.Cut(machineType, "-")
	for _, step := range steps[series] {
		if processors := processorsOf(machineType); processors > 0 && processors <= step.processors {
			return int32(step.disks)
		}
	}
	return usualLimit
}

// processorsOf reads the number in a machine type, such as c4-standard-8-lssd; 0 where there
// is none.
func processorsOf(machineType string) int {
	parts := strings.Split(machineType, "-")
	if len(parts) < 3 {
		return 0
	}
	processors, err := strconv.Atoi(parts[2])
	if err != nil {
		return 0
	}
	return processors
}
