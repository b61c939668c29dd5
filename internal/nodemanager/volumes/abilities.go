package volumes

import "context"

// Mover is a Plugin that has volumes which agents of the previous layout had under another type.
type Mover interface {
	Plugin
	// EarlierName returns the name of the type that had a volume; "" if it is still this one.
	EarlierName(spec Spec) string
}

// Queuer is a Plugin whose operations don't all wait in the queue of their type: some volumes may
// hang, and hold up no others.
type Queuer interface {
	Plugin
	// Queue returns the name of the queue for a volume. The spec has no PersistentVolume if the
	// volume is known by its directory alone.
	Queue(spec Spec, dir string) string
}

// QueueOf returns the name of the queue for a volume: that of its type, unless the type has
// several.
func QueueOf(plugin Plugin, spec Spec, dir string) string {
	if queuer, has := plugin.(Queuer); has {
		return queuer.Queue(spec, dir)
	}
	return plugin.Name()
}

// Dependent is a Plugin whose volumes need a program of the node, which may be missing.
type Dependent interface {
	Plugin
	// Missing returns what a volume waits for before it can be published or unpublished; nil if
	// that is there. The spec has neither volume nor PersistentVolume if the volume is known by
	// its directory alone.
	Missing(spec Spec, dir string) error
}

// Republisher is a Plugin of which some volumes are published again now and then while pods use them,
// so that their drivers renew what is in them.
type Republisher interface {
	Plugin
	// Republishes reports whether a volume is one of them.
	Republishes(ctx context.Context, spec Spec) bool
	// Republish publishes a published volume again. A failure leaves it as it is.
	Republish(ctx context.Context, spec Spec, dir string) error
}

// MissingOf returns what a volume waits for; nil if nothing is missing.
func MissingOf(plugin Plugin, spec Spec, dir string) error {
	if dependent, is := plugin.(Dependent); is {
		return dependent.Missing(spec, dir)
	}
	return nil
}
