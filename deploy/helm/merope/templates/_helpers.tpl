{{- define "merope.name" -}}
{{- if .Values.nameOverride -}}
{{- .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-merope" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What identifies the pods of a part: (dict "root" $ "part" "server"). Never changes. */}}
{{- define "merope.selector" -}}
app.kubernetes.io/name: merope
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "merope.labels" -}}
{{ include "merope.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "merope.image" -}}
{{- printf "%s:%s" .image.repository (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}

{{- define "merope.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "merope.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* MEROPE_REDIS_URL for server and worker; a password comes from a secret and is never rendered. */}}
{{- define "merope.redisEnv" -}}
{{- $redis := ternary .Values.redis .Values.externalRedis .Values.redis.enabled -}}
{{- $host := ternary (printf "%s-redis" (include "merope.name" .)) .Values.externalRedis.host .Values.redis.enabled -}}
{{- if not $host }}{{ fail "externalRedis.host is needed when redis.enabled is false" }}{{ end -}}
{{- if $redis.existingSecret }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $redis.existingSecret }}, key: password}}
- name: MEROPE_REDIS_URL
  value: {{ printf "redis://:$(REDIS_PASSWORD)@%s:%d" $host (int $redis.port) | quote }}
{{- else }}
- name: MEROPE_REDIS_URL
  value: {{ printf "redis://%s:%d" $host (int $redis.port) | quote }}
{{- end }}
{{- end -}}
