// Package share bounds the work on an NFS server, and translates its errors.
//
// Each operation of the backend opens its share here. So a server that is silent holds up a
// few operations, for a bounded time, and no other server's. The package knows neither volumes
// nor how files are reached: see tree.
package share
