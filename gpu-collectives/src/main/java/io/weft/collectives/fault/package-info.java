/**
 * How collectives fail: with the ranks at fault by number, on every rank alike.
 *
 * <p>Nothing here owns anything; exceptions may be thrown again on other threads.
 */
package io.weft.collectives.fault;
