package io.weft.transfer;

import io.weft.encryption.SealingKey;
import io.weft.memory.SharedArena;
import io.weft.metrics.ExchangeCounters;
import io.weft.peer.KnownPeers;
import io.weft.tcp.PeerConnections;
import java.util.Optional;

/**
 * The objects that the readers of an executor share to fetch blocks over the network.
 *
 * @param arena memory for received blocks
 * @param client source of connections
 * @param peers addresses, which are forgotten when a peer does not answer
 * @param limits of each reader
 * @param budget of all readers
 * @param counters of the exchange
 * @param failures creates the exceptions
 * @param key of encrypted chunks; empty if encryption is off
 */
record RemoteAccess(
    SharedArena arena,
    PeerConnections client,
    KnownPeers peers,
    TransferLimits limits,
    ReceiveBudget budget,
    ExchangeCounters counters,
    FetchFailures failures,
    Optional<SealingKey> key) {}
