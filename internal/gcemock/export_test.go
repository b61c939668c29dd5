package gcemock

// Methods are the names of all methods that are served.
func Methods() []string { return methods() }
