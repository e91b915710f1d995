/*-------------------------------------------------------------------------
 *
 * plan_insert.c
 *	  May the SELECT of an INSERT into a temporary table run in parallel?
 *
 * Core plans nothing but SELECT in parallel.  But the leader may insert rows
 * in parallel mode, as CREATE TABLE AS does, and workers never see a temporary
 * table that is only written.  So INSERT INTO ... SELECT can have a Gather
 * below its ModifyTable node, where the leader inserts what the workers find.
 *
 * standard_planner() decides by the kind of statement.  From 19 on, it calls
 * planner_setup_hook next, which changes the decision.  Before, the first hook
 * that it calls is get_relation_info_hook, for each table of the query; the
 * first call changes the decision.  Relations that the planner has looked at by
 * then, which are subqueries and unions of subqueries, are looked at again by
 * plan_paths.c.
 *
 * In parallel mode the leader must not assign transaction IDs, increment the
 * command counter, update or delete rows, or use a sequence.  An INSERT marks
 * its command ID as used when it starts.  So what increments the command
 * counter fails in the leader, even if it is parallel restricted; in a SELECT it
 * would not.  That is each SQL command of a volatile function, which sees rows
 * that the INSERT has inserted so far, besides; each command of a volatile
 * function that another one calls, whatever that is declared as; and, from 17 on,
 * the end of each subtransaction: a function may have an exception block, which
 * even hides the error, and the other procedural languages begin a
 * subtransaction to run SQL.  Therefore, workers are refused if anything that
 * runs while rows are inserted calls a user's function that is not written in C,
 * or a volatile one, except those that core implements in C: the query, column
 * defaults, generated columns, constraints, domains, indexes, partition keys,
 * BEFORE triggers, and conditions of AFTER triggers.  AFTER triggers themselves, among
 * them foreign keys and deferred constraints, run after parallel mode.
 *
 * The target is written while workers read other tables from their files, so
 * the read-only phase, on which workers' answers depend, must not include it.
 * A query that reads the target, or a partition of it, is refused, too; so is
 * everything that this file does not understand.
 *
 * A cached plan is not made again when a partition of the target gets a
 * trigger or a constraint.  So exec_insert.c checks the target again before
 * the statement runs.
 *
 * The invariant: an INSERT is run in parallel mode only if, besides what core
 * demands of a parallel SELECT, it inserts into temporary heap tables of this
 * session that its plan does not read, and runs no user code that starts a command
 * or depends on rows just inserted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/heap.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "plan.h"

/* Why an INSERT has no workers, as EXPLAIN says it; by InsertRefusal. */
static const char *const refusals[] = {
	[INSERT_MAY_BE_PARALLEL] = NULL,
	[INSERT_OTHER_TARGET] = NULL,	/* of no interest */
	[INSERT_MODIFIES_MORE] = "WITH has a statement that modifies data",
	[INSERT_UPDATES] = "ON CONFLICT is not DO NOTHING",
	[INSERT_READS_TARGET] = "query reads the target",
	[INSERT_UNSAFE_QUERY] = "query is not parallel safe",
	[INSERT_COMMANDS_IN_QUERY] = "query calls a function that may start commands",
	[INSERT_RULES] = "target has rules",
	[INSERT_BEFORE_TRIGGER] = "target has a BEFORE trigger",
	[INSERT_TRIGGER_CONDITION] = "condition of a trigger is not parallel safe",
	[INSERT_CONSTRAINT] = "CHECK constraint is not parallel safe",
	[INSERT_GENERATED] = "generated column is not parallel safe",
	[INSERT_INDEX] = "index is not parallel safe",
	[INSERT_PARTITION_KEY] = "partition key is not parallel safe",
};

/* ----------
 * Functions, expressions and types
 * ----------
 */

typedef struct CodeSearch
{
	List	   *types;			/* that have been searched */
	bool		commands_only;	/* parallel safety is checked elsewhere */
} CodeSearch;

static bool search_expression(Node *node, CodeSearch *search);
static bool type_is_refused(Oid type, CodeSearch *search);

/*
 * May function, with this tuple of pg_proc, increment the command counter?  A
 * function in C is trusted to be volatile if it does, and a volatile one of core's
 * in C to be parallel unsafe.
 */
static bool
function_may_start_commands(Oid function, Form_pg_proc form)
{
	if (function >= FirstNormalObjectId)
		return form->provolatile == PROVOLATILE_VOLATILE ||
			(form->prolang != INTERNALlanguageId &&
			 form->prolang != ClanguageId);
	return form->provolatile == PROVOLATILE_VOLATILE &&
		form->prolang != INTERNALlanguageId;
}

/* Must function not run while rows are inserted in parallel mode? */
static bool
function_is_refused(Oid function, void *context)
{
	CodeSearch *search = context;
	HeapTuple	tuple;
	Form_pg_proc form;
	bool		result;

	if (!OidIsValid(function))
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return true;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	result = function_may_start_commands(function, form);
	if (!search->commands_only)
		result |= form->proparallel == PROPARALLEL_UNSAFE;
	ReleaseSysCache(tuple);
	return result;
}

/* The same for the functions that a user's aggregate calls. */
static bool
aggregate_is_refused(Oid aggregate, CodeSearch *search)
{
	HeapTuple	tuple;
	Form_pg_aggregate form;
	bool		result;

	if (aggregate < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	if (!HeapTupleIsValid(tuple))
		return false;			/* a window function */
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = function_is_refused(form->aggtransfn, search) ||
		function_is_refused(form->aggfinalfn, search) ||
		function_is_refused(form->aggcombinefn, search) ||
		function_is_refused(form->aggserialfn, search) ||
		function_is_refused(form->aggdeserialfn, search) ||
		function_is_refused(form->aggmtransfn, search) ||
		function_is_refused(form->aggminvtransfn, search) ||
		function_is_refused(form->aggmfinalfn, search);
	ReleaseSysCache(tuple);
	return result;
}

/* The same for an operator by which rows are compared. */
static bool
operator_is_refused(Oid operator, CodeSearch *search)
{
	return operator >= FirstNormalObjectId &&
		function_is_refused(get_opcode(operator), search);
}

/* The same for the constraints of a domain, and of those that it is over. */
static bool
domain_is_refused(Oid domain, CodeSearch *search)
{
	CodeSearch	in_constraint = *search;
	DomainConstraintRef *ref = palloc(sizeof(DomainConstraintRef));
	ListCell   *lc;

	/* released with the memory context */
	InitDomainConstraintRef(domain, ref, CurrentMemoryContext, false);
	in_constraint.commands_only = false;	/* core does not look there */
	foreach(lc, ref->constraints)
	{
		DomainConstraintState *constraint = lfirst(lc);

		if (search_expression((Node *) constraint->check_expr, &in_constraint))
			return true;
	}
	return type_is_refused(getBaseType(domain), search);
}

/* The same for the columns of a composite type. */
static bool
composite_is_refused(Oid type, CodeSearch *search)
{
	TupleDesc	tupdesc = lookup_rowtype_tupdesc(type, -1);
	bool		result = false;

	for (int i = 0; i < tupdesc->natts && !result; i++)
	{
		if (!TupleDescAttr(tupdesc, i)->attisdropped)
			result = type_is_refused(TupleDescAttr(tupdesc, i)->atttypid,
									 search);
	}
	ReleaseTupleDesc(tupdesc);
	return result;
}

/* The same for the functions by which values of a type are compared. */
static bool
comparison_is_refused(Oid type, CodeSearch *search)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_EQ_OPR |
											  TYPECACHE_LT_OPR |
											  TYPECACHE_GT_OPR |
											  TYPECACHE_CMP_PROC |
											  TYPECACHE_HASH_PROC);

	return operator_is_refused(entry->eq_opr, search) ||
		operator_is_refused(entry->lt_opr, search) ||
		operator_is_refused(entry->gt_opr, search) ||
		function_is_refused(entry->cmp_proc, search) ||
		function_is_refused(entry->hash_proc, search);
}

/*
 * Is there something with values of type, or of what it is made of, that must
 * not run while rows are inserted in parallel mode: a domain's constraints, or
 * the functions that compare values?
 */
static bool
type_is_refused(Oid type, CodeSearch *search)
{
	Oid			element;

	check_stack_depth();
	if (type < FirstNormalObjectId || list_member_oid(search->types, type))
		return false;
	search->types = lappend_oid(search->types, type);

	element = get_element_type(type);
	if (OidIsValid(element))
		return type_is_refused(element, search);
	switch (get_typtype(type))
	{
		case TYPTYPE_DOMAIN:
			return domain_is_refused(type, search);
		case TYPTYPE_COMPOSITE:
			return composite_is_refused(type, search);
		case TYPTYPE_MULTIRANGE:
			return type_is_refused(get_multirange_range(type), search);
		case TYPTYPE_RANGE:
			{
				TypeCacheEntry *entry = lookup_type_cache(type,
														  TYPECACHE_RANGE_INFO);

				return function_is_refused(entry->rng_cmp_proc_finfo.fn_oid,
										   search) ||
					function_is_refused(entry->rng_canonical_finfo.fn_oid,
										search) ||
					type_is_refused(get_range_subtype(type), search);
			}
		case TYPTYPE_BASE:
			return comparison_is_refused(type, search);
		default:
			return false;
	}
}

/* The type of the values of node, or InvalidOid if it is not of interest. */
static Oid
type_of_node(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
		case T_Aggref:
		case T_WindowFunc:
		case T_SubscriptingRef:
		case T_FuncExpr:
		case T_OpExpr:
		case T_SubLink:
		case T_FieldSelect:
		case T_FieldStore:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_ArrayCoerceExpr:
		case T_ConvertRowtypeExpr:
		case T_CaseExpr:
		case T_ArrayExpr:
		case T_RowExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_CoerceToDomain:
			return exprType(node);
		default:
			return InvalidOid;
	}
}

/*
 * Is there something in node, an expression or a query, or a List of such, that
 * must not run while rows are inserted in parallel mode?
 */
static bool
search_expression(Node *node, CodeSearch *search)
{
	if (node == NULL)
		return false;

	if (IsA(node, NextValueExpr))
		return true;
	if (check_functions_in_node(node, function_is_refused, search) ||
		type_is_refused(type_of_node(node), search))
		return true;
	if (IsA(node, Aggref) &&
		aggregate_is_refused(((Aggref *) node)->aggfnoid, search))
		return true;
	if (IsA(node, WindowFunc) &&
		aggregate_is_refused(((WindowFunc *) node)->winfnoid, search))
		return true;
	if (IsA(node, SortGroupClause))
		return operator_is_refused(((SortGroupClause *) node)->eqop, search) ||
			operator_is_refused(((SortGroupClause *) node)->sortop, search);
	if (IsA(node, SetOperationStmt) &&
		search_expression((Node *) ((SetOperationStmt *) node)->groupClauses,
						  search))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, search_expression, search,
								 QTW_EXAMINE_SORTGROUP);
	return expression_tree_walker(node, search_expression, search);
}

/* The same for an expression that is stored in a catalog, as text. */
static bool
stored_expression_is_refused(const char *text)
{
	CodeSearch	search = {0};

	return search_expression(stringToNode(text), &search);
}

/* ----------
 * The target
 * ----------
 */

/* Is a function or an operator in operator family opfamily refused? */
static bool
opfamily_is_refused(Oid opfamily, CodeSearch *search)
{
	CatCList   *list;
	bool		result = false;

	if (opfamily < FirstNormalObjectId)
		return false;
	list = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(opfamily));
	for (int i = 0; i < list->n_members && !result; i++)
	{
		Form_pg_amproc form = (Form_pg_amproc) GETSTRUCT(&list->members[i]->tuple);

		result = function_is_refused(form->amproc, search);
	}
	ReleaseCatCacheList(list);
	list = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(opfamily));
	for (int i = 0; i < list->n_members && !result; i++)
	{
		Form_pg_amop form = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);

		result = operator_is_refused(form->amopopr, search);
	}
	ReleaseCatCacheList(list);
	return result;
}

/* May not even inserting into index run in parallel mode? */
static bool
index_is_refused(Relation index)
{
	static const AttrNumber expressions[] = {Anum_pg_index_indexprs,
	Anum_pg_index_indpred};
	CodeSearch	search = {0};

	/* bloom and others need not be prepared for parallel mode */
	if (index->rd_rel->relam >= FirstNormalObjectId)
		return true;

	for (int i = 0; i < lengthof(expressions); i++)
	{
		bool		isnull;
		Datum		expression = SysCacheGetAttr(INDEXRELID, index->rd_indextuple,
												 expressions[i], &isnull);

		if (!isnull && stored_expression_is_refused(TextDatumGetCString(expression)))
			return true;
	}

	search.commands_only = true;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (opfamily_is_refused(index->rd_opfamily[i], &search))
			return true;
	}
	if (index->rd_index->indisexclusion)
	{
		Oid		   *operators;
		Oid		   *functions;
		uint16	   *strategies;

		RelationGetExclusionInfo(index, &operators, &functions, &strategies);
		for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		{
			if (function_is_refused(functions[i], &search))
				return true;
		}
	}
	return false;
}

static bool
indexes_are_refused(Relation rel)
{
	List	   *indexes = RelationGetIndexList(rel);
	bool		result = false;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = tp_relation_open(lfirst_oid(lc));

		result = result || index_is_refused(index);
		RelationClose(index);
	}
	list_free(indexes);
	return result;
}

static bool
partition_key_is_refused(Relation rel)
{
	PartitionKey key = RelationGetPartitionKey(rel);
	CodeSearch	search = {0};

	if (key == NULL)
		return false;
	if (search_expression((Node *) key->partexprs, &search))
		return true;
	search.commands_only = true;
	for (int i = 0; i < key->partnatts; i++)
	{
		if (key->partsupfunc[i].fn_oid >= FirstNormalObjectId &&
			function_is_refused(key->partsupfunc[i].fn_oid, &search))
			return true;
	}
	return false;
}

/* Defaults are in the query; of those in the table, generated columns count. */
static InsertRefusal
constraints_refusal(Relation rel)
{
	TupleConstr *constr = RelationGetDescr(rel)->constr;

	if (constr == NULL)
		return INSERT_MAY_BE_PARALLEL;
	for (int i = 0; i < constr->num_check; i++)
	{
		if (stored_expression_is_refused(constr->check[i].ccbin))
			return INSERT_CONSTRAINT;
	}
	for (int i = 0; i < constr->num_defval; i++)
	{
		AttrNumber	attno = constr->defval[i].adnum;

		if (TupleDescAttr(RelationGetDescr(rel), attno - 1)->attgenerated != '\0' &&
			stored_expression_is_refused(constr->defval[i].adbin))
			return INSERT_GENERATED;
	}
	return INSERT_MAY_BE_PARALLEL;
}

/* Conditions of AFTER triggers are evaluated when a row is inserted. */
static InsertRefusal
triggers_refusal(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;

	if (triggers == NULL)
		return INSERT_MAY_BE_PARALLEL;
	if (triggers->trig_insert_before_row ||
		triggers->trig_insert_before_statement ||
		triggers->trig_insert_instead_row)
		return INSERT_BEFORE_TRIGGER;
	for (int i = 0; i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		if (TRIGGER_FOR_INSERT(trigger->tgtype) && trigger->tgqual != NULL &&
			stored_expression_is_refused(trigger->tgqual))
			return INSERT_TRIGGER_CONDITION;
	}
	return INSERT_MAY_BE_PARALLEL;
}

/* May rows be inserted into rel in parallel mode?  rel is open. */
static InsertRefusal
relation_refusal(Relation rel)
{
	InsertRefusal refusal;

	if (!RelationUsesLocalBuffers(rel) || RELATION_IS_OTHER_TEMP(rel) ||
		(rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		 !tp_is_session_temp_table(RelationGetRelid(rel))))
		return INSERT_OTHER_TARGET;
	if (rel->rd_rules != NULL)
		return INSERT_RULES;
	if ((refusal = triggers_refusal(rel)) != INSERT_MAY_BE_PARALLEL ||
		(refusal = constraints_refusal(rel)) != INSERT_MAY_BE_PARALLEL)
		return refusal;
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		indexes_are_refused(rel))
		return INSERT_INDEX;
	return partition_key_is_refused(rel) ? INSERT_PARTITION_KEY :
		INSERT_MAY_BE_PARALLEL;
}

/*
 * The tables that an INSERT into table relid may insert into: that table or, if
 * it is partitioned, itself and its partitions on all levels.  relid is locked;
 * no lock is taken on the partitions, which belong to this session (see
 * localbuf_family.c).  A new List of Oid in the current memory context.
 */
List *
tp_insert_targets(Oid relid)
{
	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return list_make1_oid(relid);
	return find_all_inheritors(relid, NoLock, NULL);
}

/*
 * May rows be inserted into tables targets, the result of tp_insert_targets(),
 * in parallel mode?  Opens them without a lock, and closes them.  Frees nothing
 * of what it allocates in the current memory context.
 */
InsertRefusal
tp_insert_target_refusal(List *targets)
{
	InsertRefusal refusal = INSERT_MAY_BE_PARALLEL;
	ListCell   *lc;

	foreach(lc, targets)
	{
		Relation	rel = tp_relation_open(lfirst_oid(lc));

		if (refusal == INSERT_MAY_BE_PARALLEL)
			refusal = relation_refusal(rel);
		RelationClose(rel);
	}
	return refusal;
}

/* ----------
 * The query
 * ----------
 */

typedef struct TargetSearch
{
	List	   *targets;		/* OIDs of tables */
	RangeTblEntry *written;		/* the entry by which they are written */
} TargetSearch;

/* Are any of relids in others?  Both are Lists of Oid. */
bool
tp_oids_overlap(List *relids, List *others)
{
	ListCell   *lc;

	foreach(lc, relids)
	{
		if (list_member_oid(others, lfirst_oid(lc)))
			return true;
	}
	return false;
}

/* Does a range table entry other than that of the target read a target? */
static bool
reads_target_walker(Node *node, TargetSearch *search)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		RangeTblEntry *rte = (RangeTblEntry *) node;

		if (rte == search->written || rte->rtekind != RTE_RELATION)
			return false;
		if (list_member_oid(search->targets, rte->relid))
			return true;
		return rte->inh && has_subclass(rte->relid) &&
			tp_oids_overlap(search->targets,
							find_all_inheritors(rte->relid, NoLock, NULL));
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, reads_target_walker, search,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, reads_target_walker, search);
}

/*
 * Is query, which has been rewritten, INSERT INTO ... SELECT?  A cheap test,
 * for every statement.
 */
bool
tp_is_insert_select(Query *query)
{
	RangeTblRef *source;

	if (query->commandType != CMD_INSERT ||
		query->jointree == NULL ||
		list_length(query->jointree->fromlist) != 1)
		return false;
	source = linitial(query->jointree->fromlist);
	return IsA(source, RangeTblRef) &&
		rt_fetch(source->rtindex, query->rtable)->rtekind == RTE_SUBQUERY;
}

static InsertRefusal
query_refusal(Query *query, char *hazard)
{
	TargetSearch reads;
	CodeSearch	code = {0};
	InsertRefusal refusal;

	reads.written = rt_fetch(query->resultRelation, query->rtable);
	if (get_rel_persistence(reads.written->relid) != RELPERSISTENCE_TEMP)
		return INSERT_OTHER_TARGET;
	if (query->hasModifyingCTE)
		return INSERT_MODIFIES_MORE;
	if (query->onConflict != NULL &&
		query->onConflict->action != ONCONFLICT_NOTHING)
		return INSERT_UPDATES;

	reads.targets = tp_insert_targets(reads.written->relid);
	if (reads_target_walker((Node *) query, &reads))
		return INSERT_READS_TARGET;
	refusal = tp_insert_target_refusal(reads.targets);
	if (refusal != INSERT_MAY_BE_PARALLEL)
		return refusal;

	*hazard = max_parallel_hazard(query);
	if (*hazard == PROPARALLEL_UNSAFE)
		return INSERT_UNSAFE_QUERY;
	code.commands_only = true;
	return search_expression((Node *) query, &code) ? INSERT_COMMANDS_IN_QUERY :
		INSERT_MAY_BE_PARALLEL;
}

/*
 * May the SELECT of query, for which tp_is_insert_select() is true, be run by
 * workers?  If so, sets *hazard as max_parallel_hazard() of clauses.c does.
 */
InsertRefusal
tp_insert_refusal(Query *query, char *hazard)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "parallel safety of an INSERT",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	InsertRefusal refusal = query_refusal(query, hazard);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return refusal;
}

/* The same as tp_insert_targets() for stmt, the plan of an INSERT. */
List *
tp_insert_targets_of_plan(PlannedStmt *stmt)
{
	ModifyTable *insert = castNode(ModifyTable, stmt->planTree);

	return tp_insert_targets(rt_fetch(linitial_int(insert->resultRelations),
									  stmt->rtable)->relid);
}

/* ----------
 * Planning
 * ----------
 */

/* the innermost call of the planner that was announced, or NULL */
static InsertPlanning *planning = NULL;

/*
 * Announce a call of the planner: for an INSERT whose SELECT workers may run,
 * with the hazard of tp_insert_refusal(), or for any other statement, with 0.
 * *call must stay in place until tp_end_planning_insert(), which the caller has
 * to call on every exit.
 */
void
tp_begin_planning_insert(InsertPlanning *call, char hazard)
{
	call->outer = planning;
	call->hazard = hazard;
	planning = call;
}

void
tp_end_planning_insert(InsertPlanning *call)
{
	Assert(planning == call);
	planning = call->outer;
}

/* Is an INSERT being planned whose SELECT workers may run? */
bool
tp_planning_insert(void)
{
	return planning != NULL && planning->hazard != 0;
}

/*
 * If glob belongs to the INSERT that was announced, of which parse is the Query
 * that the planner works on, have it consider parallel paths from now on, as
 * standard_planner() of planner.c does for SELECT.  To be called before the
 * planner looks at the first relation.
 */
void
tp_allow_parallel_insert(PlannerGlobal *glob, Query *parse)
{
	if (!tp_planning_insert() || glob->parallelModeOK ||
		parse->commandType != CMD_INSERT)
		return;
	glob->maxParallelHazard = planning->hazard;
	glob->parallelModeOK = true;
}

/* ----------
 * EXPLAIN
 * ----------
 */

/* cacheId of an item in invalItems, see plan_saving.c */
#define SERIAL_INSERT	(-1006)

/* Note in stmt that its SELECT has no workers, and why. */
void
tp_note_serial_insert(PlannedStmt *stmt, InsertRefusal refusal)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = SERIAL_INSERT;
	item->hashValue = refusal;
	stmt->invalItems = lcons(item, stmt->invalItems);
}

/* What tp_note_serial_insert() has noted in stmt, as text; otherwise NULL. */
const char *
tp_serial_insert_reason(PlannedStmt *stmt)
{
	PlanInvalItem *item;

	if (stmt->invalItems == NIL)
		return NULL;
	item = linitial(stmt->invalItems);
	return item->cacheId == SERIAL_INSERT ? refusals[item->hashValue] : NULL;
}
