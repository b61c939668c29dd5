package csi

import "context"

// Sweep does once what Watch does each minute.
func (p Plugin) Sweep(ctx context.Context) { p.caller.sweep(ctx) }
