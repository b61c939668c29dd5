package plugins

import "context"

// Plugin is a driver that registers.
type Plugin struct {
	// Name is the name of the CSI driver, and Endpoint the path of its socket.
	Name, Endpoint string
}

// Handler takes up drivers. Its methods may be called for different drivers at once.
type Handler interface {
	// Register begins to use a driver. After an error, which is reported to the driver, nothing of it is
	// used, and Register is called again later.
	Register(ctx context.Context, plugin Plugin) error
	// Deregister ends the use of a driver whose registration socket is gone.
	Deregister(ctx context.Context, plugin Plugin)
}
