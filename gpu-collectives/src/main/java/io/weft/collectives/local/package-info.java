/**
 * The plain reference: ranks are threads of one process, and what they compute is written for being
 * read, element by element. The other implementations are compared with it, and code above can be
 * tried with it.
 *
 * <p>Whatever thread comes last computes for all. Nothing outlives the communicators of a gang.
 */
package io.weft.collectives.local;
