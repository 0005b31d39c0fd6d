/**
 * Cliques: which devices of which process incarnations compute together for which purpose, and
 * their communicators.
 *
 * <p>Start with {@link io.weft.collectives.clique.CliqueCommunicators}, which creates the
 * communicator of a {@link io.weft.collectives.clique.CliqueKey} as a {@link
 * io.weft.collectives.clique.CliqueLease}. Only members of a clique take part in its rendezvous.
 *
 * <p>A gang starts in fixed stages: load code and native libraries, acquire its communicators,
 * acquire collective memory, then execute.
 */
package io.weft.collectives.clique;
