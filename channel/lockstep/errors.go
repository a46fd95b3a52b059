package lockstep

import "errors"

var (
	// ErrConfig is wrapped by the constructors' errors.
	ErrConfig = errors.New("lockstep: config out of range; see its fields")

	// ErrInactive is Submit's error while the player isn't in the game: before its Join, after its Drop.
	ErrInactive = errors.New("lockstep: player isn't in the game; wait for its Join event")
	// ErrInputFull is Submit's error when a turn's commands would exceed MaxInput, or those of many turns InputRate.
	// Submit the rest after the next Done.
	ErrInputFull = errors.New("lockstep: commands of this turn exceed MaxInput, or InputRate; submit after the next Done")
	// ErrEmptyCommand is Submit's error for a command without bytes.
	ErrEmptyCommand = errors.New("lockstep: empty command; give it at least one byte")
	// ErrNoTurn is Done's error when Next hasn't returned a turn since the last Done.
	ErrNoTurn = errors.New("lockstep: no turn is under way; call Next first")
	// ErrNoPlayer is the Host's error for a player number below 0, or not below Players+Spectators, and Mend's for a player
	// that isn't connected.
	ErrNoPlayer = errors.New("lockstep: no such player; see Config.Players")
	// ErrSnapshot is SetSnapshot's error for a turn that isn't in the log, and for data that is empty or over MaxSnapshot;
	// and Mend's when there is no snapshot.
	ErrSnapshot = errors.New("lockstep: no snapshot, its turn isn't in the log, or it is over MaxSnapshot")

	// ErrMalformed refuses a packet that can't be parsed.
	ErrMalformed = errors.New("lockstep: malformed packet; drop it")
	// ErrPlayer refuses a packet that names another player than its transport's.
	ErrPlayer = errors.New("lockstep: packet claims another player's id; drop it")
	// ErrSession refuses a packet of a session that isn't under way.
	ErrSession = errors.New("lockstep: packet of another session; drop it")
	// ErrAhead refuses a packet about turns or bytes that can't exist yet.
	ErrAhead = errors.New("lockstep: packet is ahead of the game; drop it")
	// ErrOversize refuses a packet with commands beyond MaxInput or InputRate.
	ErrOversize = errors.New("lockstep: commands over the limit; drop it")
	// ErrTransport is Connect's error for a transport that isn't Proven, when HostConfig.Secret is zero.
	ErrTransport = errors.New("lockstep: transport isn't Proven; give HostConfig.Secret 32 random bytes")
	// ErrTurn is Judge's error for a turn whose hashes aren't kept any more, or that isn't complete yet.
	ErrTurn = errors.New("lockstep: turn isn't among the last 256 that are complete")
	// ErrSnapshotSize ends a Peer whose host sends a snapshot over PeerConfig.MaxSnapshot. A Replay returns it for a
	// snapshot over OpenReplay's maxSnapshot.
	ErrSnapshotSize = errors.New("lockstep: the snapshot exceeds MaxSnapshot; raise it")
	// ErrTimeout ends a Peer whose host was silent for PeerConfig.Timeout.
	ErrTimeout = errors.New("lockstep: the host is silent; connect again")
	// ErrPacketSize is the error for a transport whose packets are too small for MaxInput. It also ends a Peer whose
	// transport's packets become so.
	ErrPacketSize = errors.New("lockstep: MaxInput doesn't fit a packet of the transport")
	// ErrParts is the error for a wrong number of hashes: one for each of Config.Parts is needed, or one without Parts.
	ErrParts = errors.New("lockstep: give one hash for each of Config.Parts, or one without Parts")
	// ErrStarted is SetSetup's error once the game has begun.
	ErrStarted = errors.New("lockstep: the game has begun")
	// ErrSetup is the error for a setup over MaxSetup, SetSetup's for an empty one, and Accept's when none has come yet.
	ErrSetup = errors.New("lockstep: no setup, or one over MaxSetup")
	// ErrDenied ends a Peer whose host refuses the session; Peer.Reason says why.
	ErrDenied = errors.New("lockstep: the host denied the session")
	// ErrStream ends a Peer whose host sends turns that break the rules.
	ErrStream = errors.New("lockstep: the host's turns are malformed; leave it")
)
