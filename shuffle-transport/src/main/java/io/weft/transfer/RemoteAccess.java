package io.weft.transfer;

import io.weft.encryption.SealingKey;
import io.weft.memory.SharedArena;
import io.weft.metrics.ExchangeCounters;
import io.weft.peer.KnownPeers;
import io.weft.tcp.PeerConnections;
import java.util.Optional;

/**
 * What readers of an executor share to receive blocks over the network.
 *
 * @param arena that the memory to receive into comes from
 * @param client with the connections
 * @param peers whose addresses are forgotten when they do not answer
 * @param limits for each reader
 * @param budget of all readers together
 * @param counters of the exchange
 * @param failures words for what goes wrong
 * @param key of chunks that come sealed; empty where none are
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
