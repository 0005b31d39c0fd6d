/**
 * Connections between ranks while they are made: who may connect, and messages of known length.
 * Shared by the socket bootstrap and the host communicators.
 *
 * <p>Sockets never block; whoever waits does so with a deadline. What a class opened it closes
 * unless it hands it out. Nothing on these connections is encrypted: the proof in a greeting keeps
 * strangers out, it does not hide the data.
 */
package io.weft.collectives.net;
