package gcemock

// route is one of Google's methods.
type route struct {
	// method is its name in Google's documentation, without "compute.".
	method string
	// pattern is verb and path, below the project.
	pattern string
	answer  func(*Engine, *request) (any, error)
}

// operationRoutes are about operations, by scope.
func operationRoutes() []route {
	return []route{
		{"regionOperations.list", "GET regions/{region}/operations", (*Engine).listOperations},
		{"regionOperations.get", "GET regions/{region}/operations/{operation}", (*Engine).getOperation},
		{"regionOperations.wait", "POST regions/{region}/operations/{operation}/wait", (*Engine).waitOperation},
		{"zoneOperations.list", "GET zones/{zone}/operations", (*Engine).listOperations},
		{"zoneOperations.get", "GET zones/{zone}/operations/{operation}", (*Engine).getOperation},
		{"zoneOperations.wait", "POST zones/{zone}/operations/{operation}/wait", (*Engine).waitOperation},
		{"globalOperations.list", "GET global/operations", (*Engine).listOperations},
		{"globalOperations.get", "GET global/operations/{operation}", (*Engine).getOperation},
		{"globalOperations.wait", "POST global/operations/{operation}/wait", (*Engine).waitOperation},
	}
}
