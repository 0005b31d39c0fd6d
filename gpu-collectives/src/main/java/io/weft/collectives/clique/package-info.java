/**
 * Cliques: which devices of which lives of which processes compute together for what, and the
 * communicators kept for them.
 *
 * <p>Before a gang starts it goes through stages in one order: load code and natives, acquire its
 * communicators (larger cliques first, then in request order), acquire collective memory, and only
 * then execute. The cache owns its communicators; a lease keeps one open until it is closed. Only
 * members of a clique ever meet for it.
 */
package io.weft.collectives.clique;
