package main

// The components are plain types of the game. None embeds, implements or imports anything for the network.

// Position is where an entity is, in metres.
type Position struct{ X, Y float64 }

// Velocity is in metres a second; only the server has it.
type Velocity struct{ X, Y float64 }

// Health is what is left of an entity.
type Health struct{ Points, Max uint16 }

// Name is what it is called.
type Name struct{ Text string }

// Burning is a component that comes and goes: for so many ticks it costs health.
type Burning struct{ Ticks uint8 }

// Replicated marks the entities that clients see.
type Replicated struct{}

// Trail is a client's own, and no server knows of it: how far an entity has come.
type Trail struct {
	Last   Position
	Length float64
}
