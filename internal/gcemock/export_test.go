package gcemock

// Methods are the names of all methods that are served.
func Methods() []string {
	var names []string
	for _, route := range routes() {
		names = append(names, route.method)
	}
	return names
}
