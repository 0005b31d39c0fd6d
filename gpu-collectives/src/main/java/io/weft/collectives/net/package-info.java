/**
 * Connections between ranks while they are set up: who may connect, and messages of known length.
 * Shared by the socket bootstrap and the host communicators.
 *
 * <p>Sockets never block; every wait has a deadline. A class closes what it opened unless it hands
 * it out. Nothing on these connections is encrypted: the proof in a greeting keeps strangers out
 * but does not hide the data.
 */
package io.weft.collectives.net;
