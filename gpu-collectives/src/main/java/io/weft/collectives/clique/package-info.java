/**
 * Cliques: which devices of which process incarnations compute together for which purpose, and the
 * communicators kept for them.
 *
 * <p>Start with {@link io.weft.collectives.clique.CommunicatorCache}, which leases the communicator
 * of a {@link io.weft.collectives.clique.CliqueKey} as a {@link
 * io.weft.collectives.clique.CliqueLease}.
 *
 * <p>A gang starts in fixed stages: load code and native libraries, acquire its communicators
 * (larger cliques first, then in request order), acquire collective memory, then execute. The cache
 * owns its communicators; a lease keeps one open until it is closed. Only members of a clique take
 * part in its rendezvous.
 */
package io.weft.collectives.clique;
