// Package transport carries calls to the Compute API: it signs them, tells errors of signing in
// and of connecting from those of the call itself, and leaves the API alone for as long as the
// API asked to be.
//
// The gce backend's client is made here. The package reads no Secret and knows no disk.
package transport
