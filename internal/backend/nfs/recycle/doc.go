// Package recycle empties a directory that people made, for volumes whose reclaim policy is
// Recycle.
//
// The backend's Kind opens the directory's server and calls it, until it returns nil. All is
// moved aside first and removed there, so a manager that is late can't remove what a new claim
// wrote. It removes nothing from the share of a StorageBackend.
package recycle
