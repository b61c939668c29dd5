package volumes

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
