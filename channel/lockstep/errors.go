package lockstep

import "errors"

var (
	// ErrConfig is wrapped by the constructors' errors.
	ErrConfig = errors.New("lockstep: config out of range; see its fields")

	// ErrInactive is Submit's error while the player isn't in the game: before its Join, after its Drop.
	ErrInactive = errors.New("lockstep: player isn't in the game; wait for its Join event")
	// ErrInputFull is Submit's error when a turn's commands exceed MaxInput, or those of many turns InputRate; submit the
	// rest after the next Done, or less.
	ErrInputFull = errors.New("lockstep: commands of this turn exceed MaxInput, or InputRate; submit after the next Done")
	// ErrEmptyCommand is Submit's error for a command without bytes.
	ErrEmptyCommand = errors.New("lockstep: empty command; give it a byte at least")
	// ErrNoTurn is Done's error when Next gave no turn to be done with.
	ErrNoTurn = errors.New("lockstep: no turn is under way; call Next first")
	// ErrNoPlayer is the Host's error for a player below 0 or from Players and Spectators on, and Mend's for one who isn't connected.
	ErrNoPlayer = errors.New("lockstep: no such player; see Config.Players")
	// ErrSnapshot is SetSnapshot's error for a turn the log doesn't hold, and data that is empty or over MaxSnapshot.
	ErrSnapshot = errors.New("lockstep: snapshot is of no turn in the log, empty or too large")

	// ErrMalformed refuses a packet that can't be parsed.
	ErrMalformed = errors.New("lockstep: malformed packet; drop it")
	// ErrPlayer refuses a packet in another player's name.
	ErrPlayer = errors.New("lockstep: packet claims another player's id; drop it")
	// ErrSession refuses a packet of no session under way.
	ErrSession = errors.New("lockstep: packet of another session; drop it")
	// ErrAhead refuses a packet about turns or bytes that can't exist yet.
	ErrAhead = errors.New("lockstep: packet is ahead of the game; drop it")
	// ErrOversize refuses a packet with commands beyond MaxInput.
	ErrOversize = errors.New("lockstep: commands over the limit; drop it")
	// ErrTransport is Connect's error for a transport that hasn't proved its peer's address, without a Secret to do it.
	ErrTransport = errors.New("lockstep: transport isn't Proven; give HostConfig.Secret 32 random bytes")
	// ErrTurn is Judge's error for a turn whose hashes aren't known any more, or not yet.
	ErrTurn = errors.New("lockstep: turn isn't among the last 256 that were executed")
	// ErrSnapshotSize ends a Peer whose host sends a snapshot over MaxSnapshot, and is that of a replay's snapshot over
	// OpenReplay's bound.
	ErrSnapshotSize = errors.New("lockstep: the snapshot exceeds MaxSnapshot; raise it")
	// ErrTimeout ends a Peer that heard nothing of its host for Timeout.
	ErrTimeout = errors.New("lockstep: the host is silent; connect again")
	// ErrPacketSize is the error for a transport whose packets are too small for MaxInput.
	ErrPacketSize = errors.New("lockstep: MaxInput doesn't fit a packet of the transport")
	// ErrParts is Done's and Judge's error when there are neither one hash nor as many as Config.Parts.
	ErrParts = errors.New("lockstep: give a hash for each of Config.Parts")
	// ErrStarted is SetSetup's error once the game has begun.
	ErrStarted = errors.New("lockstep: the game has begun")
	// ErrSetup is SetSetup's error for data that is empty or over MaxSetup, and Accept's when there is nothing to accept.
	ErrSetup = errors.New("lockstep: no setup, or one over MaxSetup")
	// ErrDenied ends a Peer whose host won't have it; see Peer.Reason.
	ErrDenied = errors.New("lockstep: the host denied the session")
	// ErrStream ends a Peer whose host sends turns that break the rules.
	ErrStream = errors.New("lockstep: the host's turns are malformed; leave it")
)
