package resolve

import "maps"

// InsteadOf returns the unsupported volume types by their names in the API, each with its
// alternative. docs/volumes.md lists them.
func InsteadOf() map[string]string { return maps.Clone(insteadOf) }
