/**
 * Stores map outputs in shared memory and on disk: the catalog of the owner, index files, the
 * executor's folder with its leases, encryption of chunks on disk, checksums, and migration.
 *
 * <p>Start with {@code BlockCatalog} for the blocks of this executor, with {@code HostPeers} for
 * the blocks of other executors on this host, and with {@code ExecutorFolder} for the folder.
 * {@code Leftover} sweeps those of dead executors, and {@code FolderAdoption} takes over a {@code
 * DeadFolder}. The catalog owns the memory of published outputs and frees it after their last
 * reader.
 *
 * <pre>
 * &lt;shm&gt;/weft-&lt;user&gt;/                      0700
 *   &lt;application id&gt;-&lt;8 hex&gt;/             0700, one per application
 *     &lt;executor id&gt;-&lt;8 hex&gt;/              0700, one per executor incarnation
 *       alive                             locked as long as the executor lives
 *       adoptable                         until its outputs are adopted, or cannot be any more
 *       token                             32 hex characters that only this host's users can read
 *       segment-&lt;n&gt;                       memory; a link if it is on disk
 *       output-&lt;shuffle&gt;-&lt;map&gt;             the index of one map output
 *       reader-&lt;reader&gt;-&lt;8 hex&gt;-&lt;n&gt;        locked while a reader on this host has leases
 *       lease-&lt;shuffle&gt;-&lt;reader's name&gt;.&lt;n&gt;  a lease of that reader on a shuffle
 *       feed-&lt;export&gt;-rank-&lt;rank&gt;-task-&lt;n&gt;/  a shard for other processes: an Arrow file
 *       lease-feed-&lt;the same&gt;             locked while another process reads the shard
 * </pre>
 *
 * <p>Classes are thread-safe unless their Javadoc says otherwise.
 */
package io.weft.shuffle.store;
