package resolve

import "maps"

// InsteadOf is the volume types that aren't served, by their names in the API, each with
// what to use instead. docs/volumes.md shows it.
func InsteadOf() map[string]string { return maps.Clone(insteadOf) }
