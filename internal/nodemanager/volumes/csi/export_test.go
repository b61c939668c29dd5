package csi

import "context"

// Sweep does once what Watch does all the time.
func (p Plugin) Sweep(ctx context.Context) { p.caller.sweep(ctx) }
