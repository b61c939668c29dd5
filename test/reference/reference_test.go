// Package reference_test keeps docs/reference and docs/security.md in step with the code and the
// manifests: it fails if one of them has what the other lacks. With -update it writes the generated pages.
package reference_test

import "flag"

var update = flag.Bool("update", false, "write the generated pages of docs/reference")
