// Package transport carries calls to the Compute API. It signs them, distinguishes errors of signing
// in and of connecting from those of the call itself. It makes no call for as long as the API asks.
//
// It makes the client of the gce backend. It reads no Secret and knows no disk.
package transport
