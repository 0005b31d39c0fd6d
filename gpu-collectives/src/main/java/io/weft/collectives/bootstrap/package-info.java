/**
 * How ranks find each other without Spark: through a shared folder, or a communicator that they
 * already have.
 *
 * <p>Start with {@link io.weft.collectives.bootstrap.FileBootstrap}. {@link
 * io.weft.collectives.bootstrap.BootstrapRounds} lets a rank that failed report its failure to all
 * in any bootstrap.
 *
 * <p>The connections between ranks are made here too: a listener accepts only ranks that prove that
 * they know the secret of the unique id. Sockets never block, and every wait has a deadline.
 * Nothing on connections is encrypted: the proof keeps strangers out but does not hide the data.
 *
 * <p>Each bootstrap serves one thread, and the code that opens it closes it.
 */
package io.weft.collectives.bootstrap;
