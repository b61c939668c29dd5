package engine

import "github.com/stowage-dev/stowage/internal/gcemock/wire"

// Route is one of Google's methods.
type Route struct {
	// Method is its name in Google's documentation, without "compute.".
	Method string
	// Pattern is verb and path, below the project.
	Pattern string
	Answer  func(*Engine, *wire.Request) (any, error)
}

// Routes are about operations, by scope.
func Routes() []Route {
	return []Route{
		{Method: "regionOperations.list", Pattern: "GET regions/{region}/operations", Answer: (*Engine).listOperations},
		{Method: "regionOperations.get", Pattern: "GET regions/{region}/operations/{operation}", Answer: (*Engine).getOperation},
		{Method: "regionOperations.wait", Pattern: "POST regions/{region}/operations/{operation}/wait", Answer: (*Engine).waitOperation},
		{Method: "zoneOperations.list", Pattern: "GET zones/{zone}/operations", Answer: (*Engine).listOperations},
		{Method: "zoneOperations.get", Pattern: "GET zones/{zone}/operations/{operation}", Answer: (*Engine).getOperation},
		{Method: "zoneOperations.wait", Pattern: "POST zones/{zone}/operations/{operation}/wait", Answer: (*Engine).waitOperation},
		{Method: "globalOperations.list", Pattern: "GET global/operations", Answer: (*Engine).listOperations},
		{Method: "globalOperations.aggregatedList", Pattern: "GET aggregated/operations", Answer: (*Engine).aggregateOperations},
		{Method: "globalOperations.get", Pattern: "GET global/operations/{operation}", Answer: (*Engine).getOperation},
		{Method: "globalOperations.wait", Pattern: "POST global/operations/{operation}/wait", Answer: (*Engine).waitOperation},
	}
}
