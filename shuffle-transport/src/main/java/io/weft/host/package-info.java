/**
 * An executor's place on its host: a folder that says by a lock whether its owner lives, the leases
 * that readers leave in it, and the sweeping of what dead executors left.
 *
 * <pre>
 * &lt;shm&gt;/weft-&lt;user&gt;/                      0700
 *   &lt;application id&gt;-&lt;8 hex&gt;/             0700, one per application
 *     &lt;executor id&gt;-&lt;8 hex&gt;/              0700, one per executor incarnation
 *       alive                             locked as long as the executor lives
 *       token                             32 hex characters that only this host's users can read
 *       segment-&lt;n&gt;                       memory; a link where it is on disk
 *       output-&lt;shuffle&gt;-&lt;map&gt;             the index of one map output
 *       lease-&lt;shuffle&gt;-&lt;reader&gt;-&lt;8 hex&gt;   a reader on this host may look at the shuffle
 * </pre>
 *
 * <p>An executor owns its folder and removes it when it ends; the folder of one that was killed is
 * removed by whoever sweeps next. Everything here is thread-safe unless its own Javadoc says
 * otherwise.
 */
package io.weft.host;
