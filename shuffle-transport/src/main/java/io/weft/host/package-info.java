/**
 * Manages an executor's folder on its host: the folder, a lock that shows whether its owner is
 * alive, the leases of readers, and the removal of folders of dead executors.
 *
 * <pre>
 * &lt;shm&gt;/weft-&lt;user&gt;/                      0700
 *   &lt;application id&gt;-&lt;8 hex&gt;/             0700, one per application
 *     &lt;executor id&gt;-&lt;8 hex&gt;/              0700, one per executor incarnation
 *       alive                             locked as long as the executor lives
 *       token                             32 hex characters that only this host's users can read
 *       segment-&lt;n&gt;                       memory; a link if it is on disk
 *       output-&lt;shuffle&gt;-&lt;map&gt;             the index of one map output
 *       lease-&lt;shuffle&gt;-&lt;reader&gt;-&lt;8 hex&gt;   a reader on this host may use the shuffle
 * </pre>
 *
 * <p>An executor owns its folder and removes it when it ends. The next sweep of any executor
 * removes the folder of a killed one. Classes are thread-safe unless their Javadoc says otherwise.
 */
package io.weft.host;
