/**
 * How collectives fail: every rank gets the same failure, with the numbers of the ranks at fault.
 *
 * <p>Exceptions may be rethrown on other threads.
 */
package io.weft.collectives.fault;
