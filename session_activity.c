/*-------------------------------------------------------------------------
 *
 * session_activity.c
 *	  The counters of all sessions, where others can see them: in shared memory.
 *
 * From 17 on that is a segment of the registry of dynamic shared memory, which the first
 * session makes.  Before, it is there only if the library is in shared_preload_libraries.
 * A session's counters move into it when it first launches workers or counts a statement that
 * has none, so a session of small statements has nothing to do with it.  Without it, they
 * remain in the session.
 *
 * A session alone changes its counters, without a lock, and others read them without one.
 *
 * The invariant: tp_session_stats is in the slot of this process, which has its pid, or in
 * this process; a slot is given back when its process exits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "temp_parallel.h"

static SessionStats own_stats;
SessionStats *tp_session_stats = &own_stats;

/* the slots, or NULL before this process has looked for them, and where there are none */
static ActivitySlot *activity = NULL;

static Size
activity_size(void)
{
	return MaxBackends * sizeof(ActivitySlot);
}

static void
init_activity(void *memory ACTIVITY_INIT_ARG)
{
	memset(memory, 0, activity_size());
}

#ifdef HAVE_DSM_REGISTRY
static ActivitySlot *
find_activity(void)
{
	bool		found;

	/* another release of the library may have other slots */
	return GetNamedDSMSegmentCompat("temp_parallel " TP_VERSION, activity_size(),
									init_activity, &found);
}

void
tp_request_activity(void)
{
}
#else
static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;
static ActivitySlot *at_startup = NULL;

static void
temp_parallel_shmem_request(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(activity_size());
}

static void
temp_parallel_shmem_startup(void)
{
	bool		found;

	if (prev_shmem_startup)
		prev_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	at_startup = ShmemInitStruct("temp_parallel", activity_size(), &found);
	if (!found)
		init_activity(at_startup);
	LWLockRelease(AddinShmemInitLock);
}

static ActivitySlot *
find_activity(void)
{
	return at_startup;
}

/*
 * Have the server reserve the memory, if it is loading shared_preload_libraries.  To be
 * called when the module is loaded.
 */
void
tp_request_activity(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = temp_parallel_shmem_request;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = temp_parallel_shmem_startup;
}
#endif

/*
 * The slots of all backends, MaxBackends of them, or NULL where there are none.  In a subtransaction, as that raises an error, which
 * must not be that of the statement.  Looks only once.  Not to be called in parallel mode.
 */
ActivitySlot *
tp_activity(void)
{
	static bool looked = false;
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	if (looked)
		return activity;
	looked = true;
	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		activity = find_activity();
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return activity;
}

/* Give this process's slot back; arg is the slot. */
static void
leave_slot(int code, Datum arg)
{
	ActivitySlot *slot = (ActivitySlot *) DatumGetPointer(arg);

	own_stats = slot->stats;
	tp_session_stats = &own_stats;
	slot->pid = 0;
}

/*
 * Have other sessions see the counters of this one, if there is memory for that.  To be
 * called in a transaction; does nothing in parallel mode.
 */
void
tp_show_activity(void)
{
	static bool shown = false;
	ActivitySlot *slot;

	/* not where a subtransaction cannot be started */
	if (shown || IsInParallelMode())
		return;
	shown = true;
	if (tp_activity() == NULL)
		return;
	slot = &activity[BACKEND_INDEX];
	slot->database = MyDatabaseId;
	slot->stats = own_stats;
	tp_session_stats = &slot->stats;
	before_shmem_exit(leave_slot, PointerGetDatum(slot));
	pg_write_barrier();
	slot->pid = MyProcPid;
}

/* Count a statement that has no workers because of reason, which other sessions may read. */
void
tp_count_serial(const char *reason)
{
	tp_show_activity();
	tp_session_stats->serial++;
	for (int i = 0; i < MOST_REASONS; i++)
	{
		SerialReason *counted = &tp_session_stats->reasons[i];

		if (counted->statements == 0)
			strlcpy(counted->name, reason, sizeof(counted->name));
		else if (strncmp(counted->name, reason, sizeof(counted->name) - 1) != 0)
			continue;
		counted->statements++;
		break;
	}
}
